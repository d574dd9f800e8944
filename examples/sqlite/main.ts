/**
 * Serves the SQLite database at the given path, or a demo database: at http://127.0.0.1:3000/mcp, on another port with
 * `--port`, or over stdin and stdout with `--stdio`.
 */
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import * as Layer from "effect/Layer"
import { parseArgs } from "node:util"
import * as Database from "./database.ts"
import { SqliteExplorer } from "./server.ts"

const { positionals: [file], values } = parseArgs({
  allowPositionals: true,
  options: { port: { type: "string", default: "3000" }, stdio: { type: "boolean" } }
})

const server = Layer.provide(SqliteExplorer, Database.layer(file))

if (values.stdio === true) Stdio.runMain(server)
else NodeHttp.runMain(server, { port: Number(values.port) })
