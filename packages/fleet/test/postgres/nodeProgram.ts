/**
 * A node of a fleet as a program, with the settings of its argument. It sends its port and its number to the process that
 * started it, and ends with it, or with SIGTERM as a deployed server does.
 */
import * as PostgresEventStore from "@skein/fleet/PostgresEventStore"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as Catalog from "@skein/server/Catalog"
import * as Elicitation from "@skein/server/Elicitation"
import { Fleet } from "@skein/server/Fleet"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { appendFileSync } from "node:fs"
import type { Counts, Settings } from "./nodeProcess.ts"

const { calls, idleTimeout, leaseTimeout = "2 seconds", nodeRequests, url } = JSON.parse(process.argv[2]!) as Settings

/** Writes down that a call runs here. The line stays if this process is killed. */
const note = (key: string) =>
  Effect.sync(() => {
    if (calls !== undefined) appendFileSync(calls, `${key} ${process.pid}\n`)
  })

const key = { key: Schema.String }

const server = McpServer.layer(
  { name: "node", version: "1" },
  Tool.layer(Tool.make("pid"), () => Effect.succeed(`${process.pid}`)),
  Tool.layer(Tool.make("echo", { input: key }), ({ key }) => Effect.as(note(key), key)),
  Tool.layer(Tool.make("ask", { input: key }), ({ key }) =>
    Effect.gen(function*() {
      yield* note(key)
      const { name } = yield* Elicitation.accepted(Elicitation.form(key, { name: Schema.String }))
      return `${key} ${name}`
    })),
  // Progress, a wait, progress, a wait, and the result.
  Tool.layer(
    Tool.make("steps", { input: { ...key, milliseconds: Schema.Int } }),
    ({ key, milliseconds }) =>
      Effect.gen(function*() {
        yield* note(key)
        for (const progress of [1, 2]) {
          yield* Progress.report({ progress })
          yield* Effect.sleep(milliseconds)
        }
        return key
      })
  ),
  Tool.layer(Tool.make("log"), () => Effect.as(Effect.logError("logged"), "logged")),
  Tool.layer(
    Tool.make("touch", { input: { uri: Schema.String } }),
    ({ uri }) => Effect.as(Catalog.updated(uri), "touched")
  ),
  ResourceTemplate.layer(
    ResourceTemplate.make("walk://{session}/{number}", {
      name: "watched",
      variables: { session: Schema.String, number: Schema.String }
    }),
    () => Effect.succeed("watched")
  )
)

const shared = Layer.provideMerge(
  PostgresEventStore.layer(),
  PostgresFleet.layer({ url, leaseTimeout, maxConnections: 4 })
)

process.once("disconnect", () => process.exit())

NodeHttp.runMain(Layer.provideMerge(server, shared), {
  port: 0,
  health: true,
  logLevel: "Warn",
  environment: false,
  ...(idleTimeout === undefined ? {} : { limits: { idleTimeout }, drainDelay: "1 second" }),
  ...(nodeRequests === undefined ? {} : {
    nodeRequests: {
      ...nodeRequests,
      keys: [Redacted.make("the secret of the nodes of this test")]
    }
  }),
  onListening: ({ endpoint, port }) =>
    Effect.gen(function*() {
      const { node } = yield* Fleet
      const { inspect } = yield* McpServer.McpServer
      const counts = Effect.map(inspect, ({ sessions }): Counts => ({
        sessions: endpoint.sessions,
        streams: endpoint.streams,
        requests: [...endpoint.requests].length,
        clients: sessions.map(({ connection, info }) => [
          info?.["name"],
          connection?.streams.some(({ connected, kind }) => kind === "listen" && connected) === true
        ])
      }))
      process.on("message", () => void Effect.runPromise(counts).then((counts) => process.send?.(counts)))
      process.send?.({ port, node })
    })
})
