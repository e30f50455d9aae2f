import { describeLostCommits } from "../unit/storage/lost-commits.suite.js";
import { describeLostConnection } from "../unit/storage/lost-connection.suite.js";
import { describeSharedReads } from "../unit/storage/shared-reads.suite.js";
import { describeOpening } from "../unit/storage/opening.suite.js";

describeLostCommits("Commits that are lost, in the browser");
describeLostConnection("A connection that falls, in the browser");
describeOpening("Opening and giving way, in the browser");
describeSharedReads("Reads that follow one another, in the browser");
