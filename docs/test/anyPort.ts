/**
 * Is loaded before a program that listens on a port. Replaces the port by a free one on the loopback interface, and sends it to the
 * parent process.
 */
import { type AddressInfo, Server } from "node:net"

type Listen = (this: Server, ...args: Array<unknown>) => Server

const { listen } = Server.prototype as unknown as { readonly listen: Listen }

Server.prototype.listen = function(this: Server, ...args: Array<unknown>): Server {
  const done = args.find((arg) => typeof arg === "function")
  this.once("listening", () => process.send?.((this.address() as AddressInfo).port))
  return listen.call(this, { port: 0, host: "127.0.0.1" }, done)
} as never
