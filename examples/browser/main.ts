/**
 * `npm run page`: serves a web page with a client of the tea house on `--port` (3002 by default). The page connects to
 * the server of `npm start` at http://127.0.0.1:3000/mcp, or to the one at `--server`.
 */
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { join } from "node:path"
import { commandLine, portOf, usageError } from "../commandLine.ts"
import { browserScript } from "../browserScript.ts"

const usage = "npm run page -- [--port <port>] [--server <url>]"
const { values } = commandLine(usage, {
  options: {
    port: { type: "string", default: "3002" },
    server: { type: "string", default: "http://127.0.0.1:3000/mcp" }
  }
})
const port = portOf(usage, values.port)
if (!URL.canParse(values.server)) usageError(usage, `--server is not a URL: ${values.server}`)

const pathOf = (file: string): string => join(import.meta.dirname, file)

/** The script of the page, bundled. */
const script = await browserScript({ entryPoints: [pathOf("page/main.ts")] })

const files = new Map([
  ["/", { type: "text/html; charset=utf-8", body: await readFile(pathOf("page/index.html")) }],
  ["/page.js", { type: "text/javascript; charset=utf-8", body: script }]
])

const server = createServer((request, response) => {
  const file = files.get(request.url!.split("?")[0]!)
  if (file === undefined) response.writeHead(404).end()
  else response.writeHead(200, { "content-type": file.type }).end(file.body)
})

server.on("error", ({ message }) => {
  console.error(`Cannot serve the page: ${message}`)
  process.exit(1)
})
server.listen(port, "127.0.0.1", () => {
  const { port } = server.address() as { readonly port: number }
  const url = new URL(`http://127.0.0.1:${port}/`)
  url.searchParams.set("server", values.server)
  console.log(`A web client for the tea house server (npm start). Open it in a browser:\n${url}`)
})
