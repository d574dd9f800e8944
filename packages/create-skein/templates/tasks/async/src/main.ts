/**
 * Serves clients over HTTP, at the path `/mcp`. The environment sets the port and other options: see `.env.example`.
 */
import { sqliteTasks } from "skein/tasks"
import { makeServer } from "./server.ts"

const { PACKING_SECONDS, TASKS_FILE } = process.env

const store = sqliteTasks({ filename: TASKS_FILE ?? "tasks.db" })

makeServer(store, Number(PACKING_SECONDS ?? 10) * 1000).runHttp({ health: true })
