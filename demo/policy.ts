import { config } from "zod/v4";

// The schemas of the AG-UI client try whether they may compile code; the page's policy says no, and Firefox prints that
// as an error. Without asking they go the way that they would go anyway. Imported before anything that parses.
config({ jitless: true });
