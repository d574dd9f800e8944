// #region deployed
import * as Cors from "@skein/server/Cors"
import * as LegacySse from "@skein/server/LegacySse"
import * as NodeHttp from "@skein/server/NodeHttp"
import { Hello } from "./hello.ts"

NodeHttp.runMain(Hello, {
  host: "0.0.0.0",
  port: 8080,
  allowedHosts: ["mcp.example.com"],
  allowedOrigins: ["https://app.example.com"],
  cors: Cors.make(),
  legacySse: LegacySse.make(),
  shutdownTimeout: "10 seconds"
})
// #endregion
