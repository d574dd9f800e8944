/** Serves clients over HTTP, at the path `/mcp`. The environment has the options: see `.env.example`. */
import * as NodeHttp from "@skein/server/NodeHttp"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import type * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import { makeServer } from "./server.ts"

const { ALLOWED_HOSTS, HOST, PACKING_TIME, PORT, TASKS_FILE } = process.env

const store = SqliteTasks.layer({ filename: TASKS_FILE ?? "tasks.db" })
const server = makeServer((PACKING_TIME ?? "10 seconds") as Duration.Input)

NodeHttp.runMain(Layer.provide(server, store), {
  port: Number(PORT ?? 3000),
  host: HOST,
  allowedHosts: ALLOWED_HOSTS?.split(","),
  health: true
})
