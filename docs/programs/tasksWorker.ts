// #region worker
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Layer from "effect/Layer"
import { Worker } from "./tasksMachines.ts"

// SIGTERM ends it gently: the steps in flight end, and others go on.
NodeRuntime.runMain(Layer.launch(Worker))
// #endregion
