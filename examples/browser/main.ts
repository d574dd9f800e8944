/**
 * `npm run page`: serves a web page that is a guest of the tea house, on `--port` (3001 unless it is given). The house is what
 * `npm start` opens; where it is elsewhere than on port 3000, `--server` says where.
 */
import { build } from "esbuild"
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { endWithNpm } from "../npm.ts"

const here = (file: string): string => join(import.meta.dirname, file)

/** The program of the page, in one file. */
const { outputFiles: [program] } = await build({
  entryPoints: [here("page/main.ts")],
  bundle: true,
  write: false,
  platform: "browser",
  format: "esm",
  target: "es2023",
  conditions: ["@skein/source"],
  // It is loaded where a client is given to a language model, which this page does not do.
  external: ["*/Toolkit.ts"],
  minify: true
})

const files = new Map([
  ["/", { type: "text/html; charset=utf-8", body: await readFile(here("page/index.html")) }],
  ["/page.js", { type: "text/javascript; charset=utf-8", body: program!.contents }]
])

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "3001" },
    server: { type: "string", default: "http://127.0.0.1:3000/mcp" }
  }
})

const server = createServer((request, response) => {
  const file = files.get(request.url!.split("?")[0]!)
  if (file === undefined) response.writeHead(404).end()
  else response.writeHead(200, { "content-type": file.type }).end(file.body)
})

endWithNpm()
server.listen(Number(values.port), "127.0.0.1", () => {
  const { port } = server.address() as { readonly port: number }
  const url = new URL(`http://127.0.0.1:${port}/`)
  url.searchParams.set("server", values.server)
  console.log(`A guest of the tea house (npm start), in a browser:\n${url}`)
})
