import * as Console from "@skein/console/Console"
import * as ConsoleSource from "@skein/console/ConsoleSource"
import * as ConsoleTasks from "@skein/console/ConsoleTasks"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Hello } from "./hello.ts"

// #region port
export const Operated = Layer.mergeAll(
  NodeHttp.layer({ port: 3000 }),
  Console.layer({ port: 3001 })
).pipe(Layer.provide(Hello))
// #endregion

// #region protected
export const OnTheNetwork = (secret: string, port = 3001) =>
  Console.layer({
    port,
    host: "0.0.0.0",
    allowedHosts: ["ops.example.com"],
    protect: Console.password(secret)
  }).pipe(Layer.provide(Hello))
// #endregion

// #region path
export const OnAPath = (secret: string) =>
  NodeHttp.layer({
    port: 3000,
    pages: Console.pages({ path: "/console", protect: Console.password(secret) })
  }).pipe(Layer.provide(Hello))
// #endregion

/** A console that also shows the tasks of the engine. */
export const WithTasks = Console.layer({ port: 0 }).pipe(
  Layer.provide(Layer.provideMerge(ConsoleTasks.layer, ConsoleSource.ConsoleSources.layer)),
  Layer.provide([Hello, MemoryTasks.layer()])
)

/** A queue of this program. */
export interface Jobs {
  readonly count: Effect.Effect<number>
  /** The jobs after a position, the newest first. */
  readonly list: (
    after: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<{ readonly id: string; readonly name: string; readonly startedAt: number }>>
  readonly cancel: (id: string) => Effect.Effect<boolean>
  /** Lets a job start before the others. Returns its new place; `undefined` if it has started. */
  readonly promote: (id: string) => Effect.Effect<number | undefined>
}

export const jobsSource = (jobs: Jobs): ConsoleSource.Source => {
  const nodes = (after: string | undefined, limit: number) =>
    Effect.map(jobs.list(after, limit), (all) =>
      all.map(({ id, name, startedAt }): ConsoleSource.Node => ({
        id,
        parent: "all",
        kind: "task",
        label: name,
        state: "running",
        since: startedAt,
        canInterrupt: true,
        actions: [{ name: "promote", label: "Start first", confirm: "Jobs that have waited longer start later." }]
      })))
  return {
    name: "jobs",
    read: ({ limit }) =>
      Effect.gen(function*() {
        const [total, children] = yield* Effect.all([jobs.count, nodes(undefined, limit)])
        const more = { total, after: children.at(-1)?.id }
        return { nodes: [{ id: "all", kind: "group", label: "Jobs", state: "running", more }, ...children] }
      }),
    more: ({ after, limit }) =>
      Effect.map(
        nodes(after, limit),
        (nodes) => ({ nodes, after: nodes.length < limit ? undefined : nodes.at(-1)!.id })
      ),
    interrupt: jobs.cancel,
    act: (id, action) =>
      action !== "promote" ? Effect.undefined : Effect.map(jobs.promote(id), (place) =>
        place === undefined
          ? { isDone: false, message: "The job has started" }
          : { isDone: true, message: `The job has place ${place}` })
  }
}

export const WithJobs = (jobs: Jobs) =>
  Console.layer({ port: 0 }).pipe(
    Layer.provide(Layer.provideMerge(ConsoleSource.layer(jobsSource(jobs)), ConsoleSource.ConsoleSources.layer)),
    Layer.provide(Hello)
  )

/** Interrupts the requests of a principal. Returns how many there were. */
export const interruptAll = (principal: string) =>
  Effect.gen(function*() {
    const server = yield* McpServer.McpServer
    const { requests, sessions } = yield* server.inspect
    const all = [...requests, ...sessions.flatMap(({ requests }) => requests)]
    const theirs = all.filter((request) => request.principal === principal)
    for (const { key } of theirs) yield* server.interrupt(key)
    return theirs.length
  })
