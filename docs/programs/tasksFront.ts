import * as NodeHttp from "@skein/server/NodeHttp"
import { Front } from "./tasksMachines.ts"

NodeHttp.runMain(Front, { port: 3000 })
