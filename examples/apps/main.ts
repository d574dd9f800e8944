/**
 * `npm run apps`: a server with an app, and a web page that is its host. The page listens on `--port` (3004 by default),
 * the sandbox on the next port, and the server on the one after it. Ports are origins, so the sandbox is apart.
 */
import * as SandboxProxy from "@skein/apps/SandboxProxy"
import * as Cors from "@skein/server/Cors"
import * as NodeHttp from "@skein/server/NodeHttp"
import { readFile } from "node:fs/promises"
import { createServer, type RequestListener } from "node:http"
import { join } from "node:path"
import { commandLine, portOf, usageError } from "../commandLine.ts"
import { bundle, page } from "./bundle.ts"
import { makeShop } from "./shop.ts"

const usage = "npm run apps -- [--port <port>]"
const { values } = commandLine(usage, { options: { port: { type: "string", default: "3004" } } })
const port = portOf(usage, values.port)
if (port === 0) usageError(usage, "--port must not be 0: the sandbox and the server listen on the next ports")

const at = (port: number) => `http://127.0.0.1:${port}`
const sandbox = SandboxProxy.make({ hostOrigins: [at(port)] })
const files = new Map([
  ["/", {
    type: "text/html; charset=utf-8",
    body: await readFile(join(import.meta.dirname, "host/index.html"), "utf8")
  }],
  ["/host.js", { type: "text/javascript; charset=utf-8", body: await bundle("host/host.ts") }]
])

const listen = (port: number, handle: RequestListener): void => {
  const server = createServer(handle)
  server.on("error", ({ message }) => {
    console.error(`Cannot serve the page: ${message}`)
    process.exit(1)
  })
  server.listen(port, "127.0.0.1")
}

listen(port, ({ url }, response) => {
  const file = files.get(url!.split("?")[0]!)
  if (file === undefined) response.writeHead(404).end()
  else response.writeHead(200, { "content-type": file.type }).end(file.body)
})
listen(port + 1, ({ url }, response) => {
  const { body, headers, status } = sandbox.answer(url!)
  response.writeHead(status, headers).end(body)
})

const address = new URL(at(port))
address.searchParams.set("server", `${at(port + 2)}/mcp`)
address.searchParams.set("sandbox", at(port + 1))
console.log(`A host with an app. Open it in a browser, with &plain for a host without apps:\n${address}`)
NodeHttp.runMain(makeShop(await page()), { port: port + 2, allowedOrigins: [at(port)], cors: Cors.make() })
