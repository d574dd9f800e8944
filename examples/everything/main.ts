/**
 * `npm run everything`: serves the everything server at http://127.0.0.1:3002/mcp, or on another port with `--port`; 0
 * chooses a free port. Web pages on this machine may use it, such as the Inspector.
 */
import * as Cors from "@skein/server/Cors"
import * as NodeHttp from "@skein/server/NodeHttp"
import { commandLine, portOf } from "../commandLine.ts"
import { Everything } from "./server.ts"

const usage = "npm run everything -- [--port <port>]"
const { values } = commandLine(usage, { options: { port: { type: "string", default: "3002" } } })
const port = portOf(usage, values.port)
const cors = Cors.make()

// In sessions the suite expects SSE streams. By default a response without a preceding message is sent as JSON.
NodeHttp.runMain(Everything, { port, cors, alwaysStream: "session" })
