/**
 * `npm start`: serves the tea house over HTTP on `--port` (3000 by default), or over stdio with `--stdio`. Its long
 * tasks are stored in a file, see `--data`, or in PostgreSQL with `--postgres`. With `--auth` its guests must sign in, at
 * an authorization server that this program starts. With `--console` an operator can look at it and its tasks, on the next port.
 * `--hosts` prints the settings of host applications.
 */
import * as Console from "@skein/console/Console"
import * as ConsoleSource from "@skein/console/ConsoleSource"
import * as ConsoleTasks from "@skein/console/ConsoleTasks"
import * as Cors from "@skein/server/Cors"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { WriteStream } from "node:tty"
import { commandLine, portOf, usageError } from "../commandLine.ts"
import { requireSignIn } from "./auth.ts"
import { logKitchenTo } from "./kitchenLog.ts"
import { logRequestsTo } from "./requestLog.ts"
import { TeaHouse } from "./server.ts"
import { taskStorage } from "./taskStorage.ts"
import { welcome } from "./welcome.ts"

const usage = "npm start -- [--port <port> [--auth] [--console] [--hosts] | --stdio] [--data <file> | --postgres <url>]"
const { values } = commandLine(usage, {
  options: {
    port: { type: "string", default: "3000" },
    stdio: { type: "boolean", default: false },
    auth: { type: "boolean", default: false },
    console: { type: "boolean", default: false },
    hosts: { type: "boolean", default: false },
    data: { type: "string" },
    postgres: { type: "string" }
  }
})
const options = { ...values, port: portOf(usage, values.port) }
if (options.auth && (options.stdio || options.port === 0)) {
  usageError(usage, "--auth needs HTTP, and a --port other than 0: tokens are issued for the address of the server")
}
if (options.console && options.stdio) usageError(usage, "--console needs HTTP: it is not shown with --stdio")
const { description, tasks } = taskStorage(options)

/** The server with its task storage, and with logs on `stream`. */
const server = (stream: WriteStream) =>
  Layer.provideMerge(logRequestsTo(stream), TeaHouse).pipe(
    Layer.provideMerge(tasks),
    Layer.provide(logKitchenTo(stream))
  )

/** The console, with the tasks of the server. */
const console = (port: number) =>
  Console.layer({ port }).pipe(
    Layer.provide(Layer.provideMerge(ConsoleTasks.layer, ConsoleSource.ConsoleSources.layer))
  )

/** Starts the console of the server, which ends with the scope. Returns its URL, or undefined if it was not started. */
const operate = (port: number) =>
  Layer.build(console(port)).pipe(
    Effect.map((context): string | undefined => Context.get(context, Console.Server).url),
    Effect.catchCause((cause) => Effect.as(Effect.logError("The console was not started", cause), undefined))
  )

if (options.stdio) Stdio.runMain(server(process.stderr))
else {
  // Allows web pages on this machine to connect, for example the one of `npm run page`.
  const cors = Cors.make()
  const auth = options.auth ? await requireSignIn(options.port) : undefined
  NodeHttp.runMain(server(process.stdout), {
    port: options.port,
    cors,
    protection: auth?.protection,
    onListening: ({ port, url }) =>
      Effect.scoped(Effect.flatMap(
        // On a port that the system chooses, the console has one too.
        options.console ? operate(options.port === 0 ? 0 : port + 1) : Effect.succeed(undefined),
        (console) => welcome(url, { storage: description, console, hosts: options.hosts, auth })
      ))
  })
}
