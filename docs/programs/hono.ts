// #region hono
import { Hono } from "hono"
import { honoHandler } from "skein/http"
import { greeter } from "./functions.ts"

const mcp = honoHandler(greeter, {
  allowedHosts: ["mcp.example.com"],
  principal: (request) => {
    const token = request.headers.get("authorization")
    return token === "Bearer ada" ? { id: "ada" } : undefined
  }
})

const app = new Hono()
app.get("/health", (c) => c.text("ok"))
app.all("/mcp", mcp)

export default app
// #endregion
