/**
 * Serves the everything server at http://127.0.0.1:3001/mcp, or on another port with `--port`; 0 chooses a free port.
 */
import * as NodeHttp from "@skein/server/NodeHttp"
import { parseArgs } from "node:util"
import { exitWithNpm } from "../exitWithNpm.ts"
import { Everything } from "./server.ts"

const { values } = parseArgs({ options: { port: { type: "string", default: "3001" } } })

exitWithNpm()
// In sessions the suite expects SSE streams. By default a response without a preceding message is sent as JSON.
NodeHttp.runMain(Everything, { port: Number(values.port), alwaysStream: "session" })
