import { chooseHost } from "./host-choice.js";

/** The page scripted.html on a host of another kind, and with the means to hammer threads. */
chooseHost(new URLSearchParams(location.search));
await import("./scripted.js");
await import("./hammer.js");
