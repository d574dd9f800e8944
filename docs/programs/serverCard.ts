// #region card
import * as NodeHttp from "@skein/server/NodeHttp"
import * as ServerCard from "@skein/server/ServerCard"
import { Hello } from "./hello.ts"

NodeHttp.runMain(Hello, {
  allowedHosts: ["mcp.example.com", "localhost"],
  serverCard: ServerCard.make({
    url: "https://mcp.example.com/mcp",
    name: "com.example/hello",
    description: "Greets people by name."
  })
})
// #endregion
