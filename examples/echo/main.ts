/**
 * `npm run echo`: serves the echo server at http://127.0.0.1:3000/mcp, on another port with `--port`, or over stdin and
 * stdout with `--stdio`.
 */
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import { commandLine, portOf } from "../commandLine.ts"
import { Echo } from "./server.ts"

const usage = "npm run echo -- [--port <port> | --stdio]"
const { values } = commandLine(usage, {
  options: { port: { type: "string", default: "3000" }, stdio: { type: "boolean" } }
})
const port = portOf(usage, values.port)

if (values.stdio === true) Stdio.runMain(Echo)
else NodeHttp.runMain(Echo, { port })
