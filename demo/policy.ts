import { config } from "zod/v4";

// The schemas of the AG-UI client try whether they may compile code; the page's policy says no, and Firefox prints that
// as an error. Without asking they go the way that they would go anyway. Imported before anything that parses.
config({ jitless: true });

// `connect-src` of index.html names this origin, and loopback addresses: the page asks servers of models on the same
// computer whether they are there. Nothing else is reached from the page. It does not bind the worker, which fetches by the
// policy of its own file's response (here none): so an address and a key that somebody enters are used there only.
