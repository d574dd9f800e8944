// #region worker
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Layer from "effect/Layer"
import { Worker } from "./tasksMachines.ts"

// On SIGTERM the running steps end, and other workers continue the tasks.
NodeRuntime.runMain(Layer.launch(Worker))
// #endregion
