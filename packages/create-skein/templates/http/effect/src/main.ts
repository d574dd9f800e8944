/**
 * Serves clients over HTTP, at the path `/mcp`. The environment sets the port and other options: see `.env.example`.
 */
import * as NodeHttp from "@skein/server/NodeHttp"
import { Server } from "./server.ts"

NodeHttp.runMain(Server, { health: true })
