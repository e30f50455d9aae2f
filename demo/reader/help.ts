/** What Reader says where there is nothing to read yet, or where it is asked what it can do. */
export const HELP = `### I am Reader

I read documents right here in your browser. Nothing you give me leaves it, and there is no model behind me: I count, rank and search.

**Drop a file or paste a text**, up to 20 MB:

- **Text or Markdown**: I find the outline, the key terms and the key sentences, each with its line.
- **CSV or TSV** (JSON too, when it is a small list of objects): I describe every column, with statistics and histograms.

**Then ask**, for example:

- “What does it say about the lamp?” – I search the document and quote what I find.
- “average of price by city”, “max of price”, “how many rows where city is Berlin” – I calculate from all rows.

`;

export const NOTHING_YET = "There is no document in this conversation yet. Drop one, and I start to read.\n";

/** A person who asks for help, or greets. */
export const ASKS_FOR_HELP =
  /^(?:help|hilfe|hi|hello|hey|hallo|moin|\?|what can you do|what do you do|was kannst du|who are you|wer bist du)[\s!?.]*$/i;

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
