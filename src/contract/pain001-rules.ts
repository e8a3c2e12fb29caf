/**
 * Rules for pain.001 documents beyond their content model: the number of transfers and their sum, and whether the document agrees
 * with the payment service and product of the path.
 */

import { collapse, type StructureCheck } from './content-model.ts';
import type { DeviationList } from './deviation.ts';
import { decimalPattern } from './pain001-models.ts';

/** From the path of the request. */
export interface PathOfPayment {
  readonly paymentService: string;
  readonly paymentProduct: string;
}

const instantProduct = 'pain.001-instant-sepa-credit-transfers';

export const isSepaProduct = (product: string): boolean =>
  product === 'pain.001-sepa-credit-transfers' || product === instantProduct;

/** Number and sum of the transfers in a document or a group: as stated, and as counted. */
interface Totals {
  statedCount: string | undefined;
  statedSum: string | undefined;
  count: number;
  /** `undefined` if an amount is unknown. Computed only if a sum is stated; the document states it before the transfers. */
  sum: bigint | undefined;
}

const newTotals = (): Totals => ({ statedCount: undefined, statedSum: undefined, count: 0, sum: 0n });

/** Checks a document while it is parsed. */
export class TransferRules {
  readonly #isSingle: boolean;
  readonly #isSepa: boolean;
  readonly #isInstant: boolean;
  readonly #root: string;
  readonly #list: DeviationList;
  readonly #document = newTotals();
  #group = newTotals();
  #isInstantGroup = false;
  #isInstantTransfer = false;

  /** @param root path of the document in the message */
  constructor({ paymentService, paymentProduct }: PathOfPayment, root: string, list: DeviationList) {
    this.#isSingle = paymentService === 'payments' || paymentService === 'periodic-payments';
    this.#isSepa = isSepaProduct(paymentProduct);
    this.#isInstant = paymentProduct === instantProduct;
    this.#root = root;
    this.#list = list;
  }

  /**
   * Called with each element that ends, while it is still open in the structure.
   *
   * @param currency of the last amount
   */
  close(structure: StructureCheck, text: string, currency: string | undefined): void {
    switch (structure.nameOf(0)) {
      case 'NbOfTxs':
        this.#totalsOf(structure.nameOf(1)).statedCount = text;
        return;
      case 'CtrlSum':
        this.#totalsOf(structure.nameOf(1)).statedSum = text;
        return;
      case 'PmtMtd':
        if (text === 'CHK' || text === 'TRA') this.#reportProduct('PmtInf/PmtMtd');
        return;
      case 'ChrgBr':
        if (this.#isSepa && text !== 'SLEV') this.#reportProduct(`${structure.nameOf(1)}/ChrgBr`);
        return;
      case 'Cd':
        if (text === 'INST' && structure.nameOf(1) === 'LclInstrm') this.#addInstant(structure.nameOf(3));
        return;
      case 'InstdAmt':
        if (this.#isSepa && currency !== undefined && currency !== 'EUR') this.#reportProduct('InstdAmt/Ccy');
        this.#addAmount(text);
        return;
      case 'EqvtAmt':
        this.#document.sum = undefined; // the amount may be converted
        this.#group.sum = undefined;
        return;
      case 'CdtTrfTxInf':
        this.#endTransfer();
        return;
      case 'PmtInf':
        this.#compare(this.#group, 'PmtInf');
        this.#group = newTotals();
        this.#isInstantGroup = false;
        return;
      case 'Document':
        this.#compare(this.#document, 'GrpHdr');
        if (this.#isSingle && this.#document.count > 1) {
          this.#list.add('harmful', 'several-transfers', `${this.#root}/CdtTrfTxInf`, 'refused');
        }
    }
  }

  #totalsOf(parent: string | undefined): Totals {
    return parent === 'GrpHdr' ? this.#document : this.#group;
  }

  #addInstant(owner: string | undefined): void {
    if (owner === 'PmtInf') this.#isInstantGroup = true;
    else this.#isInstantTransfer = true;
  }

  #endTransfer(): void {
    this.#document.count++;
    this.#group.count++;
    if (this.#isSepa && (this.#isInstantGroup || this.#isInstantTransfer) !== this.#isInstant) {
      this.#reportProduct('LclInstrm');
    }
    this.#isInstantTransfer = false;
  }

  #addAmount(text: string): void {
    if (this.#document.statedSum === undefined && this.#group.statedSum === undefined) return;
    const amount = scaled(text);
    for (const totals of [this.#document, this.#group]) {
      totals.sum = amount === undefined || totals.sum === undefined ? undefined : totals.sum + amount;
    }
  }

  #compare({ statedCount, statedSum, count, sum }: Totals, element: 'GrpHdr' | 'PmtInf'): void {
    if (statedCount !== undefined && /^[0-9]{1,15}$/.test(statedCount) && Number(statedCount) !== count) {
      this.#report('transfer-count', `${element}/NbOfTxs`);
    }
    const stated = statedSum === undefined ? undefined : scaled(statedSum);
    if (stated !== undefined && sum !== undefined && stated !== sum) {
      this.#report('control-sum', `${element}/CtrlSum`);
    }
  }

  /** The path names another product than the document. Some banks follow the path, others the document. */
  #reportProduct(path: string): void {
    this.#report('product', path);
  }

  /** No schema contains these rules: some banks do not check them. */
  #report(rule: 'transfer-count' | 'control-sum' | 'product', path: string): void {
    this.#list.add('notable', rule, `${this.#root}/${path}`, 'may-be-refused');
  }
}

const fractionDigits = 17;

/** An exact decimal number, as a multiple of 10 to the power of -17; `undefined` if it is none. */
function scaled(text: string): bigint | undefined {
  const value = collapse(text);
  if (!decimalPattern.test(value)) return undefined;
  const [whole = '', fraction = ''] = value.replace('+', '').split('.');
  return BigInt(whole + fraction.padEnd(fractionDigits, '0'));
}
