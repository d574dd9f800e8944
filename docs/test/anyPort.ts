/**
 * Is loaded before a program that listens on a port. Replaces the port by a free one on the loopback interface, or by that of the
 * variable `ANY_PORT`, and sends it to the parent process.
 */
import * as http from "node:http"
import { type AddressInfo, Server } from "node:net"

type Listen = (this: Server, ...args: Array<unknown>) => Server

// The HTTP server of Bun is not a server of `node:net`.
for (const { prototype } of [Server, http.Server]) {
  if (!Object.hasOwn(prototype, "listen")) continue
  const { listen } = prototype as unknown as { readonly listen: Listen }
  prototype.listen = function(this: Server, ...args: Array<unknown>): Server {
    const done = args.find((arg) => typeof arg === "function")
    this.once("listening", () => process.send?.((this.address() as AddressInfo).port))
    return listen.call(this, { port: Number(process.env["ANY_PORT"] ?? 0), host: "127.0.0.1" }, done)
  } as never
}
