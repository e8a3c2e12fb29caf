import { defineBatch } from '../kit/batch.ts';

defineBatch('test/{architecture,unit/[a-n]*}/**/*.test.ts');
