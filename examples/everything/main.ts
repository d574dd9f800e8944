/**
 * Serves http://127.0.0.1:3001/mcp, or another port with `--port`; 0 is one that is free.
 */
import * as NodeHttp from "@skein/server/NodeHttp"
import { parseArgs } from "node:util"
import { endWithNpm } from "../npm.ts"
import { Everything } from "./server.ts"

const { values } = parseArgs({ options: { port: { type: "string", default: "3001" } } })

endWithNpm()
// The suite looks for streams in the session era, where a result that comes first would be sent as JSON.
NodeHttp.runMain(Everything, { port: Number(values.port), alwaysStream: "session" })
