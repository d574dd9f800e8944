/**
 * The tea house over HTTP, on `--port` (3000 unless it is given), or over stdio with `--stdio`. Its long tasks are kept in a file, which
 * `--data` names, or in PostgreSQL with `--postgres`.
 */
import * as Cors from "@skein/server/Cors"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import * as Layer from "effect/Layer"
import type { WriteStream } from "node:tty"
import { parseArgs } from "node:util"
import { endWithNpm } from "../npm.ts"
import { placeOf } from "./keeping.ts"
import { heard } from "./kitchen.ts"
import { shown } from "./requests.ts"
import { TeaHouse } from "./server.ts"
import { welcome } from "./welcome.ts"

const options = () => {
  try {
    const { values } = parseArgs({
      options: {
        port: { type: "string", default: "3000" },
        stdio: { type: "boolean", default: false },
        data: { type: "string" },
        postgres: { type: "string" }
      }
    })
    return { ...values, port: Number(values.port) }
  } catch (error) {
    const usage = "usage: npm start -- [--port <port> | --stdio] [--data <file> | --postgres <url>]"
    console.error(`${error instanceof Error ? error.message : error}\n${usage}`)
    return process.exit(2)
  }
}

const given = options()
const { tasks, told } = placeOf(given)

/** The tea house, with what stands around it. */
const house = (stream: WriteStream) =>
  Layer.provideMerge(shown(stream), TeaHouse).pipe(Layer.provide([tasks, heard(stream)]))

endWithNpm()
if (given.stdio) Stdio.runMain(house(process.stderr))
else {
  // Pages of this machine may come too: `npm run page` has one.
  const cors = Cors.make()
  NodeHttp.runMain(house(process.stdout), { port: given.port, cors, onListening: ({ url }) => welcome(url, told) })
}
