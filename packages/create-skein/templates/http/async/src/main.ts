/**
 * Serves clients over HTTP, at the path `/mcp`. The environment sets the port and other options: see `.env.example`.
 */
import { server } from "./server.ts"

server.runHttp({ health: true })
