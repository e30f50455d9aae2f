import "fake-indexeddb/auto";
import { describeLostCommits } from "./lost-commits.suite.js";
import { describeLostConnection } from "./lost-connection.suite.js";
import { describeOpening } from "./opening.suite.js";
import { describeSharedReads } from "./shared-reads.suite.js";

describeLostCommits("Commits that are lost, on fake-indexeddb");
describeLostConnection("A connection that falls, on fake-indexeddb");
describeOpening("Opening and giving way, on fake-indexeddb");
describeSharedReads("Reads that follow one another, on fake-indexeddb");
