import { webHandler } from "skein/http"
import { greeter } from "./functions.ts"

const { handler } = webHandler(greeter, { allowedHosts: ["mcp.example.com"], stateless: true })

export { handler as DELETE, handler as GET, handler as OPTIONS, handler as POST }
