/** Skein's client over `node:http`. */
import * as NodeHttp from "@skein/client/NodeHttp"
import type { Connect } from "../testClient.ts"
import { connectOver } from "../skein.ts"

export const connect: Connect = connectOver(NodeHttp.transport)
