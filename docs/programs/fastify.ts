import * as NodeHttp from "@skein/server/NodeHttp"
import Fastify from "fastify"
import { Hello } from "./hello.ts"

const mcp = await NodeHttp.mount(Hello, { allowedHosts: ["localhost", "mcp.example.com"] })

const app = Fastify()
app.all("/mcp", (request, reply) => {
  reply.hijack()
  mcp.handler(request.raw, reply.raw, { body: request.body })
})
app.addHook("preClose", () => mcp.close())
await app.listen({ port: 3000, host: "127.0.0.1" })

process.once("SIGTERM", () => app.close())
