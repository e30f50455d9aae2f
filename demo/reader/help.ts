/** What Reader says where there is nothing to read yet, or where it is greeted or asked what it can do. */
export const HELP = `## Hello, I am Reader

I read documents right here in your browser. Nothing you give me leaves it, and there is no model behind me: I count, rank and search.

**Drop a file or paste a text**, up to 5 MB:

- **Text or Markdown**: I find the outline and the key terms, each heading with its line.
- **CSV or TSV**: I describe every column, with statistics and histograms.

**Then ask**, for example “What does it say about the lamp?”: I search the document and quote what I find.

`;

export const NOTHING_YET = "There is no document in this conversation yet. Drop one, and I will start reading.\n";

/** A greeting, thanks, or a question about the agent: nothing to search for. */
const ASKS_FOR_HELP =
  /^(?:(?:hi+|hello|hey|hallo|moin|good (?:morning|afternoon|evening|day))(?:[\s,]+(?:there|again|you|all|reader|researcher))?[\s!?.,]*)?(?:help(?: me)?|\?|how are you|thanks?|thank you|what can (?:you|i) do|what (?:do|are) you(?: do)?|who are you)?[\s!?.]*$/i;

export const asksForHelp = (question: string): boolean => question.trim() !== "" && ASKS_FOR_HELP.test(question.trim());

/** The report itself is asked for, not something in the document. */
export const asksForReport = (question: string): boolean =>
  /^(?:please |can you )?(?:summari[sz]e|sum up|outline|analy[sz]e|read|describe|(?:a |the )?(?:summary|overview|outline|report))(?: (?:me|of|the|this|that|it|document|file|text|table|again|please))*[\s.!?]*$/i.test(
    question.trim(),
  );
