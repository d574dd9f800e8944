/**
 * One process of a server that several processes serve: `examples/everything`, with its tasks in PostgreSQL. The arguments
 * are the URL of the database of the tasks, the way in which the processes share their sessions, and their number for
 * `workers`, or the URL of the database of the sessions.
 */
import * as PostgresEventStore from "@skein/fleet/PostgresEventStore"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as RedisEventStore from "@skein/fleet/RedisEventStore"
import * as RedisFleet from "@skein/fleet/RedisFleet"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { EverythingWithoutTasks } from "../../examples/everything/server.ts"

const [tasksUrl = "", kind = "", argument = ""] = process.argv.slice(2)

const server = EverythingWithoutTasks.pipe(Layer.provide(PostgresTasks.layer({ url: tasksUrl })))
// As for `examples/everything`: in sessions the suite expects SSE streams.
const options = { port: 0, alwaysStream: "session" } as const

// For a stream of a call that a client resumes at another node.
const nodeRequests = { keys: [Redacted.make(process.env["SKEIN_STATE_KEYS"] ?? "")] }

const onPostgres = Layer.provideMerge(PostgresEventStore.layer(), PostgresFleet.layer({ url: argument }))
const onRedis = Layer.provideMerge(RedisEventStore.layer(), RedisFleet.layer({ url: argument }))

if (kind === "workers") NodeHttp.runMain(server, { ...options, workers: Number(argument) })
else if (kind === "redis") NodeHttp.runMain(Layer.provideMerge(server, onRedis), { ...options, nodeRequests })
else NodeHttp.runMain(Layer.provideMerge(server, onPostgres), { ...options, nodeRequests })
