// #region vercel
import { webHandler } from "skein/http"
import { greeter } from "./functions.ts"

const { handler } = webHandler(greeter, {
  path: "/api/mcp",
  allowedHosts: ["my-server.vercel.app"],
  stateless: true
})

export default { fetch: (request: Request) => handler(request) }
// #endregion
