/**
 * Free ports for tests whose servers must know their port before they listen.
 *
 * The ports are below the range from which systems take one for a listener or a connection without a port (from 32768 on
 * Linux, from 49152 on others). A port of that range could belong to another test by the time it is used: a client then
 * speaks with the wrong server.
 */
import { randomInt } from "node:crypto"
import { createServer } from "node:net"

/** The first port, and the one after the last. */
const range = { from: 10_000, to: 32_000 } as const

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** Returns a port of 127.0.0.1 on which nothing listens. */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(range.from, range.to)
    if (await isFree(port)) return port
  }
  throw new Error(`no free port was found between ${range.from} and ${range.to}`)
}
