/** What Reader says where there is nothing to read yet, or where it is greeted or asked what it can do. */
export const HELP = `## Hello, I am Reader

I read documents right here in your browser. Nothing you give me leaves it, and there is no model behind me: I count, rank and search.

**Drop a file or paste a text**, up to 20 MB:

- **Text or Markdown**: I find the outline, the key terms and the key sentences, each with its line.
- **CSV or TSV** (JSON too, when it is a small list of objects): I describe every column, with statistics and histograms.

**Then ask**, for example:

- “What does it say about the lamp?”: I search the document and quote what I find.
- “average of price by city”, “max of price”, “how many rows where city is Berlin”: I calculate from all rows.

`;

export const NOTHING_YET = "There is no document in this conversation yet. Drop one, and I will start reading.\n";

const GREETING =
  "(?:hi+|hello|hey|hallo|moin|greetings|howdy|good (?:morning|afternoon|evening|day)|guten (?:tag|morgen))";
const TO_WHOM = "(?:[\\s,]+(?:there|again|you|all|everyone|reader|researcher))?";
const ABOUT_AGENT =
  "(?:help(?: me)?|hilfe|\\?|how are you|thanks?|thank you|what can (?:you|i) do|what (?:do|are) you(?: do)?|was kannst du|who are you|wer bist du)";

/** Whether a text greets the agent, thanks it or asks what it can do: nothing to search for. */
const ASKS_FOR_HELP = new RegExp(`^(?:${GREETING}${TO_WHOM}[\\s!?.,]*)?(?:${ABOUT_AGENT}${TO_WHOM})?[\\s!?.]*$`, "i");

export const asksForHelp = (question: string): boolean => question.trim() !== "" && ASKS_FOR_HELP.test(question.trim());

/** Words with which a person asks for the report itself, not for something in the document. */
const REPORT_WORDS =
  /\b(?:please|bitte|summari[sz]e|summary|sum up|outline|overview|analy[sz]e|analysis|read|describe|statistics|stats|key (?:terms|sentences|points)|zusammenfassung|fasse|zusammen|gliederung|überblick|lies|report|again|nochmal|document|file|text|table|datei|dokument|tabelle|columns?|rows?|pasted|me|tell|show|look|at|can|you|could|have)\b/giu;

/** Whether a text asks for the report and nothing else. */
export function asksForReport(question: string): boolean {
  const rest = question.replace(REPORT_WORDS, " ").match(/[\p{L}\p{N}]+/gu) ?? [];
  return rest.every((word) =>
    /^(?:the|a|an|of|this|that|it|in|and|for|its|is|what|das|die|der|den|dieses?|es|mir|und|von|mal)$/i.test(word),
  );
}
