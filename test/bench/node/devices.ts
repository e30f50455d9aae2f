import { crowdCalls } from "./crowd.js";
import { serveCalls } from "./serve.js";
import { fillCalls } from "./space-fill.js";
import { pacedCalls } from "./space-paced.js";

const api = { ...pacedCalls, ...fillCalls, ...crowdCalls };

export type NodeDevices = typeof api;

serveCalls(api);
