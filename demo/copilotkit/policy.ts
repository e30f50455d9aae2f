import { config } from "zod/v4";

// As `demo/policy.ts`, for the copy of zod that this page has.
config({ jitless: true });
