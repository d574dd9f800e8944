/** Serves the built site on the loopback interface. */
import { readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { extname, join } from "node:path"
import { fileOf } from "./links.ts"

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".woff2": "font/woff2"
}

/** Listens on 127.0.0.1, on any free port if `port` is 0. `base` is the path of the site, with a slash at its end. */
export const serveSite = async (folder: string, base: string, port: number): Promise<Server> => {
  const server = createServer(({ url = "/" }, response) => {
    // The URL standard removes `..` from the path.
    const { pathname } = new URL(url, "http://site")
    const file = pathname.startsWith(base) ? fileOf(folder, pathname.slice(base.length)) : undefined
    const name = file ?? "404.html"
    response.writeHead(file === undefined ? 404 : 200, {
      "content-type": types[extname(name)] ?? "text/plain; charset=utf-8"
    })
    response.end(readFileSync(join(folder, name)))
  })
  await new Promise<void>((resolve, reject) => void server.once("error", reject).listen(port, "127.0.0.1", resolve))
  return server
}
