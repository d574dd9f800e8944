/** The server of the tests of a console of several workers. */
import * as Console from "@skein/console/Console"
import * as ConsoleSource from "@skein/console/ConsoleSource"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const pid = Tool.layer(Tool.make("pid"), () => Effect.sync(() => String(process.pid)))
const hold = Tool.layer(Tool.make("hold"), () => Effect.never)

const restarts: Array<string> = []

/** A job of each worker, which can be started again. */
const jobs: ConsoleSource.Source = {
  name: "jobs",
  read: () =>
    Effect.succeed({
      nodes: [
        { id: "all", kind: "group", label: "Jobs", state: "running", more: { total: 2 } },
        {
          id: "job",
          parent: "all",
          kind: "task",
          label: `restarted ${restarts.length} times`,
          state: "running",
          actions: [{ name: "restart", label: "Restart" }]
        }
      ]
    }),
  more: ({ parent }) =>
    Effect.succeed({ nodes: [{ id: "other", parent, kind: "task", label: `of ${process.pid}`, state: "running" }] }),
  act: (id, action) =>
    id === "job" && action === "restart"
      ? Effect.sync(() => ({ isDone: restarts.push(id) > 0, message: `Restarted in ${process.pid}` }))
      : Effect.undefined
}

const database: ConsoleSource.Source = {
  name: "database",
  isShared: true,
  read: () => Effect.succeed({ nodes: [{ id: "rows", kind: "group", label: "Rows", state: "idle" }] })
}

NodeHttp.runMain(
  McpServer.layer({ name: "tea", version: "1.0.0" }, pid, hold).pipe(
    Layer.provideMerge(Layer.merge(ConsoleSource.layer(jobs), ConsoleSource.layer(database))),
    Layer.provideMerge(ConsoleSource.ConsoleSources.layer)
  ),
  { port: 0, workers: 2, pages: Console.pages({ protect: () => ({ id: "operator" }) }) }
)
