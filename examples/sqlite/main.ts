/**
 * `npm run sqlite`: serves the SQLite database at the given path, or a demo database: at http://127.0.0.1:3000/mcp, on
 * another port with `--port`, or over stdin and stdout with `--stdio`.
 */
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import * as Layer from "effect/Layer"
import { commandLine, portOf, usageError } from "../commandLine.ts"
import * as Database from "./database.ts"
import { SqliteExplorer } from "./server.ts"

const usage = "npm run sqlite -- [--port <port> | --stdio] [<file>]"
const { positionals: [file, ...more], values } = commandLine(usage, {
  allowPositionals: true,
  options: { port: { type: "string", default: "3000" }, stdio: { type: "boolean" } }
})
if (more.length > 0) usageError(usage, "expected at most one file")
const port = portOf(usage, values.port)

const server = Layer.provide(SqliteExplorer, Database.layer(file))

if (values.stdio === true) Stdio.runMain(server)
else NodeHttp.runMain(server, { port })
