/** The types of Express that the programs use, because Express has none and `@types/express` is not installed. */
declare module "express" {
  import type { IncomingMessage, Server, ServerResponse } from "node:http"

  type Handler = (
    request: IncomingMessage,
    response: ServerResponse & { send(body: string): void },
    next: (error?: unknown) => void
  ) => void

  export default function express(): {
    get(path: string, handler: Handler): void
    all(path: string, handler: Handler): void
    listen(port: number, host: string): Server
  }
}
