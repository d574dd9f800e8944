/**
 * `npm start`: serves the tea house over HTTP on `--port` (3000 by default), or over stdio with `--stdio`. Its long
 * tasks are stored in a file, see `--data`, or in PostgreSQL with `--postgres`.
 */
import * as Cors from "@skein/server/Cors"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import * as Layer from "effect/Layer"
import type { WriteStream } from "node:tty"
import { commandLine, portOf } from "../commandLine.ts"
import { logKitchenTo } from "./kitchenLog.ts"
import { logRequestsTo } from "./requestLog.ts"
import { TeaHouse } from "./server.ts"
import { taskStorage } from "./taskStorage.ts"
import { welcome } from "./welcome.ts"

const usage = "npm start -- [--port <port> | --stdio] [--data <file> | --postgres <url>]"
const { values } = commandLine(usage, {
  options: {
    port: { type: "string", default: "3000" },
    stdio: { type: "boolean", default: false },
    data: { type: "string" },
    postgres: { type: "string" }
  }
})
const options = { ...values, port: portOf(usage, values.port) }
const { description, tasks } = taskStorage(options)

/** The server with its task storage, and with logs on `stream`. */
const server = (stream: WriteStream) =>
  Layer.provideMerge(logRequestsTo(stream), TeaHouse).pipe(Layer.provide([tasks, logKitchenTo(stream)]))

if (options.stdio) Stdio.runMain(server(process.stderr))
else {
  // Allows web pages on this machine to connect, for example the one of `npm run page`.
  const cors = Cors.make()
  NodeHttp.runMain(server(process.stdout), {
    port: options.port,
    cors,
    onListening: ({ url }) => welcome(url, description)
  })
}
