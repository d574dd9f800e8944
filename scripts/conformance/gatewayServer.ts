/**
 * A gateway on a free port. The arguments are the configuration of its servers, as JSON, and the revision to speak to them.
 */
import * as NodeConfig from "@skein/client/NodeConfig"
import * as Gateway from "@skein/gateway/Gateway"
import * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"

const [config = "", revision = ""] = process.argv.slice(2)
if (!Revision.is(revision)) throw new Error(`unknown revision ${JSON.stringify(revision)}`)

const source = NodeConfig.object(JSON.parse(config), { client: () => ({ revisions: [revision] }) })
const Front = McpServer.layer({ name: "front", version: "1.0.0" }, Gateway.fromConfig(source))

// As for `examples/everything`: in sessions the suite expects SSE streams.
NodeHttp.runMain(Front, { port: 0, alwaysStream: "session" })
