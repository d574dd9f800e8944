/**
 * The tea house over HTTP, on `--port` (3000 unless it is given), or over stdio with `--stdio`.
 */
import * as Cors from "@skein/server/Cors"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import * as Layer from "effect/Layer"
import type { WriteStream } from "node:tty"
import { parseArgs } from "node:util"
import { endWithNpm } from "../npm.ts"
import { shown } from "./requests.ts"
import { TeaHouse } from "./server.ts"
import { welcome } from "./welcome.ts"

const options = () => {
  try {
    const { values } = parseArgs({
      options: { port: { type: "string", default: "3000" }, stdio: { type: "boolean", default: false } }
    })
    return values
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\nusage: npm start -- [--port <port> | --stdio]`)
    return process.exit(2)
  }
}

/** What stands around the tea house is layered on top of it. */
const showing = (stream: WriteStream) => Layer.provideMerge(shown(stream), TeaHouse)

const { port, stdio } = options()

endWithNpm()
if (stdio) Stdio.runMain(showing(process.stderr))
else {
  // Pages of this machine may come too: `npm run page` has one.
  const cors = Cors.make()
  NodeHttp.runMain(showing(process.stdout), { port: Number(port), cors, onListening: ({ url }) => welcome(url) })
}
