/**
 * Serves clients over HTTP, at the path `/mcp`. The environment sets the port and other options: see `.env.example`.
 */
import * as NodeHttp from "@skein/server/NodeHttp"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import { makeServer } from "./server.ts"

const { PACKING_SECONDS, TASKS_FILE } = process.env

const server = makeServer(Duration.seconds(Number(PACKING_SECONDS ?? 10)))
const store = SqliteTasks.layer({ filename: TASKS_FILE ?? "tasks.db" })

NodeHttp.runMain(Layer.provide(server, store), { health: true })
