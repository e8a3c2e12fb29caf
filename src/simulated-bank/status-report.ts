/** A transaction status as a pain.002 document, which the XML products return. */

/**
 * Based on the example of The Berlin Group, NextGenPSD2 XS2A OpenAPI 1.3.11, CC BY 4.0; shortened, with our own values.
 *
 * @param now milliseconds since 1970
 */
export function statusReport(paymentId: string, status: string, now: number): string {
  return `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.03">
  <CstmrPmtStsRpt>
    <GrpHdr>
      <MsgId>report-${now}</MsgId>
      <CreDtTm>${new Date(now).toISOString()}</CreDtTm>
    </GrpHdr>
    <OrgnlGrpInfAndSts>
      <OrgnlMsgId>${escaped(paymentId)}</OrgnlMsgId>
      <OrgnlMsgNmId>pain.001.001.03</OrgnlMsgNmId>
      <GrpSts>${escaped(status)}</GrpSts>
    </OrgnlGrpInfAndSts>
    <OrgnlPmtInfAndSts>
      <OrgnlPmtInfId>${escaped(paymentId)}</OrgnlPmtInfId>
      <PmtInfSts>${escaped(status)}</PmtInfSts>
    </OrgnlPmtInfAndSts>
  </CstmrPmtStsRpt>
</Document>
`;
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
