/**
 * A server whose definitions are all those of another server, by `Proxy` of `@skein/gateway`, on a free port. The
 * arguments are the URL of the other server and the revision to speak to it.
 */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/NodeHttp"
import * as Proxy from "@skein/gateway/Proxy"
import * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"

const [url = "", revision = ""] = process.argv.slice(2)
if (!Revision.is(revision)) throw new Error(`unknown revision ${JSON.stringify(revision)}`)

const behind = Client.make(Http.transport({ url }), { label: "everything", revisions: [revision] })
const Front = McpServer.layer({ name: "front", version: "1.0.0" }, Proxy.layer(behind))

// As for `examples/everything`: in sessions the suite expects SSE streams.
NodeHttp.runMain(Front, { port: 0, alwaysStream: "session" })
