/** As much of Express's types as the program uses: it brings none, and `@types/express` is yours to install. */
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
