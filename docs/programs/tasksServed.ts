// #region served
import * as NodeHttp from "@skein/server/NodeHttp"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Layer from "effect/Layer"
import { Bakery } from "./tasks.ts"

NodeHttp.runMain(Layer.provide(Bakery, SqliteTasks.layer({ filename: "tasks.db" })), { port: 3000 })
// #endregion
