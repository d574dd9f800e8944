/**
 * Serves the echo server at http://127.0.0.1:3000/mcp, on another port with `--port`, or over stdin and stdout with
 * `--stdio`.
 */
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import { parseArgs } from "node:util"
import { Echo } from "./server.ts"

const { values } = parseArgs({ options: { port: { type: "string", default: "3000" }, stdio: { type: "boolean" } } })

if (values.stdio === true) Stdio.runMain(Echo)
else NodeHttp.runMain(Echo, { port: Number(values.port) })
