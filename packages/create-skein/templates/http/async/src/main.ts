/** Serves clients over HTTP, at the path `/mcp`. The environment has the options: see `.env.example`. */
import * as NodeHttp from "@skein/server/NodeHttp"
import { Server } from "./server.ts"

const { ALLOWED_HOSTS, HOST, PORT } = process.env

NodeHttp.runMain(Server, {
  port: Number(PORT ?? 3000),
  host: HOST,
  allowedHosts: ALLOWED_HOSTS?.split(","),
  health: true
})
